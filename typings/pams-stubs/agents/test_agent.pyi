from ..market import Market
from ..order import Cancel, Order
from .base import Agent

class TestAgent(Agent):
    def submit_orders(self, markets: list[Market]) -> list[Order | Cancel]: ...
