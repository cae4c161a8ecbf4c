"""The private names of PAMS that this package reads, in one table.

PAMS promises nothing about them. ``tests/test_pams.py`` compares the table with the installed PAMS,
so that a rename there fails in one place, with the name, instead of somewhere in a run.
"""

from __future__ import annotations

from typing import Final

PRIVATE_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "SequentialRunner": (
        "_prng",
        "_setup",
        "_run",
        "_update_markets",
        "_collect_orders_from_normal_agents",
        "_handle_orders",
        "_iterate_market_updates",
    ),
    "Simulator": ("_prng",),
    "Fundamentals": ("_prng", "_np_prng", "_generated_until", "_generate_next"),
    "Market": (
        "_prng",
        "_market_prices",
        "_last_executed_prices",
        "_mid_prices",
        "_fundamental_prices",
        "_executed_volumes",
        "_executed_total_prices",
        "_n_buy_orders",
        "_n_sell_orders",
    ),
    "IndexMarket": ("_components",),
}
"""Class name in PAMS -> the private attributes and methods of its instances that are used here."""
