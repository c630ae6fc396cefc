"""Matrix multiply: register tiles, packing, and the drivers around them."""
