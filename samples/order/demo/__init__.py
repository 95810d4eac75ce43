"""The demo: a server, workers that are killed, four orders. Not needed to use the sample."""
