from sigma_layers import *
