from .arbitrage_agent import ArbitrageAgent as ArbitrageAgent
from .base import Agent as Agent
from .fcn_agent import FCNAgent as FCNAgent
from .high_frequency_agent import HighFrequencyAgent as HighFrequencyAgent
from .market_maker_agent import MarketMakerAgent as MarketMakerAgent
from .market_share_fcn_agent import MarketShareFCNAgent as MarketShareFCNAgent
from .test_agent import TestAgent as TestAgent
