"""Write the message of a hook into a file; a mail or a chat would get it here."""

import json
import sys

run = json.load(sys.stdin)
with open("messages.txt", "a", encoding="utf-8") as file:
    print(f"{run['skill']}: {run['status']}", file=file)
