"""Studies: priors from data, how good they are, mechanisms compared, the paper reproduced."""
