"""python run.py SCENE,… TAG PEER EDGE…: plays scenes with nodes whose ids end in TAG, against those that end in PEER. Its status says how that went."""

import sys

from calls import CALLS
from foreign import gateway
from gateway import Gateway
from library import library
from nodes import Served
from registry import REGISTRY


def served(gateways, tag, **_):
    """Serves until there is nothing more to read."""
    nodes = Served(gateways, tag, f"interop-{tag}")
    print("ready", flush=True)
    sys.stdin.read()
    nodes.stop()


def main(names, tag, peer, *edges):
    gateways = [Gateway(address) for address in edges]
    if names == "served":
        served(gateways, tag)
    elif names == "gateway":
        gateway(tag)
    else:
        for name in names.split(","):
            print(f"playing {name}", file=sys.stderr)
            more = f"{tag}-{name}"
            {**CALLS, **REGISTRY, "library": library}[name](gateways=gateways, tag=more, peer=peer, domain=f"interop-{more}")
    for g in gateways:
        g.close()


main(*sys.argv[1:])
