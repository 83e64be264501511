"""Square corners: a recurrent walker with and without a look back."""
