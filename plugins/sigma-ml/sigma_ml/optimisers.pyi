from sigma_optimisers import *
