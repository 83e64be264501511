"""Five questions that every lecture asks; one file a question. Each draws its answer and returns the page's title."""
