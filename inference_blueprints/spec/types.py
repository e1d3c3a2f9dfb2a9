"""The blueprint's types: the keys and values of a YAML file.

An optional section that the file does not name is off. A choice is one key of several (``eks``,
``aggregated``), never a type field. Keys are camelCase in YAML and snake_case here.
"""

from inference_blueprints.spec.blueprint import *
from inference_blueprints.spec.section import *
from inference_blueprints.spec.sections.batch.keys import *
from inference_blueprints.spec.sections.capacity_shift.keys import *
from inference_blueprints.spec.sections.elasticity.keys import *
from inference_blueprints.spec.sections.environment.keys import *
from inference_blueprints.spec.sections.front_door.keys import *
from inference_blueprints.spec.sections.gguf.keys import *
from inference_blueprints.spec.sections.gpu_health.keys import *
from inference_blueprints.spec.sections.images.keys import *
from inference_blueprints.spec.sections.models.keys import *
from inference_blueprints.spec.sections.models.objectives import *
from inference_blueprints.spec.sections.models.rates import *
from inference_blueprints.spec.sections.observability.keys import *
from inference_blueprints.spec.sections.pools.keys import *
from inference_blueprints.spec.sections.queueing.keys import *
from inference_blueprints.spec.sections.signals.keys import *
from inference_blueprints.spec.sections.stacks.keys import *
from inference_blueprints.spec.sections.streaming.keys import *
from inference_blueprints.spec.sections.workloads.keys import *
