from sigma_hooks import *
