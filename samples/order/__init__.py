"""Order fulfilment: reserve stock, charge the card, ship; all of it, or none of it."""
