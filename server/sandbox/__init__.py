"""How a snippet is run: a warmed fork server, a warden over each child, and the supervisor that listens to it.

    supervisor (worker, command line) --socket: request + fds--> fork server (torch imported, warmed, one thread)
        fork server --fork--> warden (one a phase: clock, memory, processes; ends the whole tree)
            warden --fork--> child (isolates and limits itself, then runs the snippet and says what happens on its pipe)

What isolates it is `isolation`, tried out by the fork server when it starts. The command line's own runs have limits only.
"""
