from pams.agents.fcn_agent import FCNAgent
from pams.market import Market
from pams.order import Cancel, Order

class MarketShareFCNAgent(FCNAgent):
    def submit_orders(self, markets: list[Market]) -> list[Order | Cancel]: ...
    def get_sum_trade_volume(self, market: Market) -> int: ...
