from sigma_initialisers import *
