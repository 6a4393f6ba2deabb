"""The commands of `rprime`, one a file."""
