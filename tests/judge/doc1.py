import mxnet as mx
import numpy as np
 
from mxnet import profiler
 
#configure the profiler
profiler.set_config(profile_all=True, aggregate_stats=True, filename='trace_profile.json')
#start the profiler collecting data
profiler.set_state('run')
 
###########################################################
#1. create our data
data = np.linspace(1,9,9).reshape((3,3))
 
#2. create an MXNet ndarray
a = mx.nd.array(data)
 
#3. compute on our data and produce results
b = mx.nd.diag(a)
c = mx.nd.sum(b,-1)
 
#4. wait for computation to finish
mx.nd.waitall()
###########################################################
 
#stop the profiler
profiler.set_state('stop')
 
#dump the profiling data as a string
print(profiler.dumps())
#dump the profiling data as a json file that can be viewed graphically
profiler.dump()
