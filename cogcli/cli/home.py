"""The home screen: what a bare `cogcli` and `cogcli --help` print (docs/reference/command-line.md#flags), at
most 24 lines."""

from __future__ import annotations

from cogcli import __version__

HOME = f"""\
cogcli {__version__}: run declared skills under governance, and see what each run did.

  cogcli skills ls                              what can I run?
  cogcli run text.summarize -p text=@notes.md   run one
  cogcli trace @last                            what happened?

Run      run  resume  rerun  replay       run, continue, repeat, re-check
Inspect  trace  state  ls  diff  verify   what happened, is it unaltered?
Author   skills  capabilities  bindings  services    ls, show, search, explain
         graph  validate  schema          draw, check, editors
Check    doctor  openapi                  is all ready? do bindings work?
Manage   gc  config  serve  explain  help  clear away, settings, clients, codes
Options  -C DIR  --registry DIR  --runs-dir DIR  --json  --color WHEN  -q  -v
         --debug  --version  -h
Topics   cogcli help exit-codes | environment | inputs | paths | formats
"""
