import os
import random
from abc import ABC, abstractmethod
from io import TextIOBase
from typing import Any, TextIO

from ..agents import Agent
from ..logs.base import Logger
from ..simulator import Simulator

class Runner(ABC):
    settings: dict[str, Any]
    _prng: random.Random
    logger: Logger | None
    simulator: Simulator
    registered_classes: list[type[Any]]
    def __init__(
        self,
        settings: dict[str, Any] | TextIOBase | TextIO | os.PathLike[str] | str,
        prng: random.Random | None = None,
        logger: Logger | None = None,
        simulator_class: type[Simulator] = ...,
    ) -> None: ...
    def main(self) -> None: ...
    def class_register(self, cls: type[Any]) -> None: ...
    @abstractmethod
    def _setup(self) -> None: ...
    @abstractmethod
    def _run(self) -> None: ...
    @staticmethod
    def judge_hft_or_not(agent: Agent) -> bool: ...
