"""The menu "Look inside": heads, layers and positions of the chosen model."""
