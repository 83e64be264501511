"""The gallery of mistakes: wrong code beside right code, and a model of each, trained on the spot and measured."""
