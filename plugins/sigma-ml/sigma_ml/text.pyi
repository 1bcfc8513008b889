from sigma_text import *
