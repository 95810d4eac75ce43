"""The order sample, traced and measured."""
