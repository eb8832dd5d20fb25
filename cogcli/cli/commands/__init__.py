"""One module per command or group of commands; `cli/app.py` lists their functions."""
