# Generated: python -m sigma_testing.generate
# ruff: noqa
from sigma_initialisers.constant import Constant as Constant
from sigma_initialisers.delta_orthogonal import DeltaOrthogonal as DeltaOrthogonal
from sigma_initialisers.from_file import FromFile as FromFile
from sigma_initialisers.gaussian import Gaussian as Gaussian
from sigma_initialisers.glorot_normal import GlorotNormal as GlorotNormal
from sigma_initialisers.glorot_uniform import GlorotUniform as GlorotUniform
from sigma_initialisers.he_normal import HeNormal as HeNormal
from sigma_initialisers.he_uniform import HeUniform as HeUniform
from sigma_initialisers.identity import Identity as Identity
from sigma_initialisers.lecun_normal import LecunNormal as LecunNormal
from sigma_initialisers.lecun_uniform import LecunUniform as LecunUniform
from sigma_initialisers.lsuv import LSUV as LSUV
from sigma_initialisers.orthogonal import Orthogonal as Orthogonal
from sigma_initialisers.saved import read_saved as read_saved
from sigma_initialisers.saved import saved_parameters as saved_parameters
from sigma_initialisers.sparse import Sparse as Sparse
from sigma_initialisers.truncated_normal import TruncatedNormal as TruncatedNormal
from sigma_initialisers.uniform import Uniform as Uniform
from sigma_initialisers.warm_start import WarmStart as WarmStart
