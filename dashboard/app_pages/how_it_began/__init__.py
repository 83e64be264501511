"""The menu "How it began": from the bottleneck of recurrent networks to attention."""
