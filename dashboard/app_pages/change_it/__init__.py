"""The menu "Change it": masks, tokens and heads are changed, and the effect is measured."""
