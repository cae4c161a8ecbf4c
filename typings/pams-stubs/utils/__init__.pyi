from .class_finder import find_class as find_class
from .json_extends import json_extends as json_extends
from .json_random import JsonRandom as JsonRandom
from .json_random import JsonValue as JsonValue
