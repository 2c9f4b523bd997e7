--------------------------------- MODULE MC ---------------------------------
\* Values that a configuration file can not write.
EXTENDS Milepost
KeyOfABA == <<"a", "b", "a">>
KeyOfAB  == <<"a", "b">>
KeyOfAA  == <<"a", "a">>
KeyOfA   == <<"a">>
\* The first steps of an instance that is too large to be searched in full every time.
FirstSteps == TLCGet("level") < 26
=============================================================================
