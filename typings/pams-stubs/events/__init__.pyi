from .base import EventABC as EventABC
from .base import EventHook as EventHook
from .fundamental_price_shock import FundamentalPriceShock as FundamentalPriceShock
from .order_mistake_shock import OrderMistakeShock as OrderMistakeShock
from .price_limit_rule import PriceLimitRule as PriceLimitRule
from .trading_halt_rule import TradingHaltRule as TradingHaltRule
