"""The demo: a server, workers that are killed, five orders. Not needed to use the sample."""
