<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 4.01 Transitional//EN">
<HTML>
<HEAD>
<TITLE>U.S. House of Representatives Roll Call Votes 118th Congress - 2nd Session (2024)</TITLE>
</HEAD>
<BODY BGCOLOR="#FFFFFF">
<H2 ALIGN="CENTER">U.S. House of Representatives Roll Call Votes<BR>
 118th Congress - 2nd Session (2024)</H2>
<P>Votes are listed by roll call number, newest first.</P>
<TABLE CELLPADDING="5" CELLSPACING="0" BORDER="1" WIDTH="100%">
<TR><TH>Roll</TH><TH>Date</TH><TH>Issue</TH><TH>Question</TH><TH>Result</TH><TH>Title/Description</TH></TR>
<TR><TD><A HREF="http://clerk.house.gov/cgi-bin/vote.asp?year=2024&rollnumber=1">1</A></TD>
<TD><FONT FACE="Arial" SIZE="-1">9-Jan</FONT></TD>
<TD><FONT FACE="Arial" SIZE="-1"><A HREF="https://www.congress.gov/bill/118th-congress/house-resolution/940">H RES 940</A></FONT></TD>
<TD><FONT FACE="Arial" SIZE="-1">On Motion to Suspend the Rules and Agree</FONT></TD>
<TD ALIGN="CENTER"><FONT FACE="Arial" SIZE="-1">P</FONT></TD>
<TD><FONT FACE="Arial" SIZE="-1">Recognizing the keepers of the lighthouses of the Atlantic coast</FONT></TD></TR>
</TABLE>
<P><A HREF="ROLL_000.asp">Roll Calls 001 to 99</A></P>
</BODY>
</HTML>
