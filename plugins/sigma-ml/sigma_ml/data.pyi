from sigma_data import *
