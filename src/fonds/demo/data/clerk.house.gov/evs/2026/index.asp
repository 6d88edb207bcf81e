<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 4.01 Transitional//EN">
<HTML>
<HEAD>
<TITLE>U.S. House of Representatives Roll Call Votes 119th Congress - 2nd Session (2026)</TITLE>
</HEAD>
<BODY BGCOLOR="#FFFFFF">
<H2 ALIGN="CENTER">U.S. House of Representatives Roll Call Votes<BR>
 119th Congress - 2nd Session (2026)</H2>
<P>Votes are listed by roll call number, newest first.</P>
<TABLE CELLPADDING="5" CELLSPACING="0" BORDER="1" WIDTH="100%">
<TR><TH>Roll</TH><TH>Date</TH><TH>Issue</TH><TH>Question</TH><TH>Result</TH><TH>Title/Description</TH></TR>
<TR><TD><A HREF="http://clerk.house.gov/cgi-bin/vote.asp?year=2026&rollnumber=7">7</A></TD>
<TD><FONT FACE="Arial" SIZE="-1">3-Feb</FONT></TD>
<TD><FONT FACE="Arial" SIZE="-1"><A HREF="https://www.congress.gov/bill/119th-congress/house-joint-resolution/41">H J RES 41</A></FONT></TD>
<TD><FONT FACE="Arial" SIZE="-1">On Agreeing to the Amendment</FONT></TD>
<TD ALIGN="CENTER"><FONT FACE="Arial" SIZE="-1">F</FONT></TD>
<TD><FONT FACE="Arial" SIZE="-1">Deverell of Tennessee Part B Amendment No. 2</FONT></TD></TR>
</TABLE>
<P><A HREF="ROLL_000.asp">Roll Calls 001 to 99</A></P>
</BODY>
</HTML>
