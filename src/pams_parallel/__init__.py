"""pams-parallel."""
