"""Pictures that several pages draw as HTML: tokens, tinted texts, tables of numbers, strips of steps."""
