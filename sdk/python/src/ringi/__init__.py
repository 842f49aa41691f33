"""Workers and client of ringi, a durable workflow engine.

A Worker takes tasks from a server, calls the function that stands for each
activity, and reports what became of it. A Client publishes definitions, starts
runs and looks after them. Both need only the standard library.

    worker = ringi.Worker(ringi.Client())

    @worker.activity("greet.hello")
    def hello(task: ringi.Task) -> object:
        return {"text": "hello " + task.input["name"]}

    worker.run()
"""

from .client import FINAL, Cause, Client, Done, Published, Run, Sent, Started, Step
from .error import Cancelled, Failure, RingiError
from .lane import Lane
from .task import Cancellation, Task
from .worker import Worker

__all__ = [
    "FINAL",
    "Cancellation",
    "Cancelled",
    "Cause",
    "Client",
    "Done",
    "Failure",
    "Lane",
    "Published",
    "RingiError",
    "Run",
    "Sent",
    "Started",
    "Step",
    "Task",
    "Worker",
]
