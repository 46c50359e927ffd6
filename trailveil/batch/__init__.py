"""Many traces: the same release as of one, of each of them, counted in order and resumable.

A run is `trailveil.batch.running.run`. Workers (`working`) read, design and draw; the process that
was started counts each release in the ledger, in the order of the inputs, and lets it appear.
"""
