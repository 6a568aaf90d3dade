"""python run.py CONNECTION SCENE TAG EDGE…: plays a scene, or is a host or a sub-agent. Its status says how that went."""

import sys

import task
from http_agent import HTTPAgent
from scenes import SCENES
from ws_agent import SocketAgent


def main(connection, scene, tag, *edges):
    kind = {"http": HTTPAgent, "ws": SocketAgent}[connection]
    agents = []

    def enter(name, **where):
        agent = kind(f"{name}-{tag}", edges)
        agent.open(**where)
        agents.append(agent)
        return agent

    try:
        if scene in SCENES:
            SCENES[scene](enter, edges)
        else:
            getattr(task, scene)(enter, edges, tag)
    finally:
        for agent in agents:
            agent.cut()


main(*sys.argv[1:])
