"""Laws that every healthy model keeps, and the check of one model against them."""
