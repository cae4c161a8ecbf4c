from abc import ABC, ABCMeta

from .base import Agent

# In a stub, mypy takes a class for abstract only when the metaclass is written out.
class HighFrequencyAgent(Agent, ABC, metaclass=ABCMeta): ...
