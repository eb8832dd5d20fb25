"""The home screen, generated from the commands by `tooling/generate_cli_docs.py`."""

from cogcli import __version__

HOME = f"""\
cogcli {__version__}: run declared skills under governance, and see what each run did.

  cogcli skills ls         show what can run here, and why not
  cogcli run SKILL         run a skill and print its outputs
  cogcli ls                list runs, newest first
  cogcli trace [EP]        show what happened in a run
  cogcli report [EP]       write an HTML page about a run
  cogcli resume [EP]       resume a stopped or paused run
  cogcli verify [EP]       check whether a run was altered
  cogcli new project NAME  create a project with a skill that runs at once
  cogcli validate          check your spec files
  cogcli doctor            check that this machine is ready

Try      cogcli run text.brief -p text=@README.md
Options  -C DIR  --registry DIR  --runs-dir DIR  --json  --color WHEN  -q  -v
         --debug  --version  -h
Topics   cogcli help commands | exit-codes | environment | inputs | paths |
         formats
"""
