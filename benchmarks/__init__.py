"""What declared compensation costs, against no undo at all and an undo written by hand."""
