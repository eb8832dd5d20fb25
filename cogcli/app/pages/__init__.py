"""The texts that `help TOPIC` and `explain CODE` print, one file each."""
