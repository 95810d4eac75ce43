"""Views of a run: a table for a terminal, JSON, a Mermaid graph, a timeline as SVG and HTML.

Pure functions from a `RunLedger` to a text. Every name in a ledger may have been chosen by
anybody, so each view makes it fit for where it is shown.
"""
