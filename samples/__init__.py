"""Samples of agboss-temporal, each a package that can be copied as a start."""
