import random
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

class Fundamentals:
    _prng: random.Random
    _np_prng: np.random.Generator
    correlation: dict[tuple[int, int], float]
    drifts: dict[int, float]
    volatilities: dict[int, float]
    prices: dict[int, list[float]]
    market_ids: list[int]
    initials: dict[int, float]
    start_at: dict[int, int]
    _generated_until: int
    _generate_chunk_size: int
    def __init__(self, prng: random.Random) -> None: ...
    def add_market(
        self,
        market_id: int,
        initial: float,
        drift: float,
        volatility: float,
        start_at: int = 0,
    ) -> None: ...
    def remove_market(self, market_id: int) -> None: ...
    def change_volatility(self, market_id: int, volatility: float, time: int = 0) -> None: ...
    def change_drift(self, market_id: int, drift: float, time: int = 0) -> None: ...
    def set_correlation(
        self, market_id1: int, market_id2: int, corr: float, time: int = 0
    ) -> None: ...
    def remove_correlation(self, market_id1: int, market_id2: int, time: int = 0) -> None: ...
    def _generate_log_return(
        self, generate_target_ids: list[int], length: int
    ) -> npt.NDArray[np.float64]: ...
    def _generate_next(self) -> None: ...
    def get_fundamental_price(self, market_id: int, time: int) -> float: ...
    def get_fundamental_prices(self, market_id: int, times: Iterable[int]) -> list[float]: ...
