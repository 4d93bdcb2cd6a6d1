import mxnet as mx
import numpy as np
 
from mxnet import profiler
 
profiler.set_config(profile_all=True, aggregate_stats=True, filename='trace_profile.json')
profiler.set_state('run')
 
################
# first run
sdata = np.linspace(1,9,9).reshape((3,3))
 
sa = mx.nd.array(sdata)
sb = mx.nd.diag(sa)
sc = mx.nd.sum(sb,-1)
 
mx.nd.waitall()
################
 
################
# second run
data = np.linspace(1,9,9).reshape((3,3))
 
a = mx.nd.array(data)
b = mx.nd.diag(a)
c = mx.nd.sum(b,-1)
 
mx.nd.waitall()
################
 
profiler.set_state('stop')
 
print(profiler.dumps())
profiler.dump()
