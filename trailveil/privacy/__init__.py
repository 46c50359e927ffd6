"""What a release tells, and to whom: false tracks, movement, knowledge, certificates."""
