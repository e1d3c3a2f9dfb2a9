"""Jobs: the record of each, who may submit what, and how one is submitted, whichever way it came in."""
