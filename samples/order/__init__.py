"""Order fulfilment: reserve stock, charge the card, ship; what an order did is undone if it fails."""
