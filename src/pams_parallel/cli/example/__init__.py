"""A small example: two spot markets and their index, a shock, and agents that learn."""
