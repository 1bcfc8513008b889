"""Studies: several runs of one configuration, with other seeds or on other folds, in one folder."""
